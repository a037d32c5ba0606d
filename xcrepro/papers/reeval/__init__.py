"""Re-evaluating XMTC methods in tail label prediction."""
