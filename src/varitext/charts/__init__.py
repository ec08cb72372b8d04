"""Charts as plain records, their colours and labels, and how plotly draws them: reports and notebooks share them."""
