"""Every extractor on kept, explored, cyclic and planted e-graphs."""
