"""What every room depends on: errors, files, resources, interrupts and deadlines."""
