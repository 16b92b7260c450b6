"""What every experiment needs: where it ran, a reference for its speed, keeping results."""
