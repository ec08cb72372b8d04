"""Speed, perplexity and memory beside other topic models (`compare`), and growth of cost with size (`growth`)."""
