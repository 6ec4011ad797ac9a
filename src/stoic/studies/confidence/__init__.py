"""The confidence study: quantiles of F(w) − F* over thousands of runs on laws whose optimum is known."""
