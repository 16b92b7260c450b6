"""The ground of every room: errors, files, resources, interrupts and deadlines."""
