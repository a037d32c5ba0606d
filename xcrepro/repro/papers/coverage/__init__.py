"""Coverage@k, greedy inference, COV-PLT."""
