"""Speed, perplexity and memory compared with other topic models (`compare`); growth of cost with size (`growth`)."""
