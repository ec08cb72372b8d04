"""Charts as plain records, their colours and labels, and their plotly figures; shared by reports and notebooks."""
