"""TENSAT's models with TASO's rules, beside TENSAT's own figures."""
