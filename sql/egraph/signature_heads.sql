UPDATE signature SET head = n.head FROM new_head AS n WHERE signature.id = n.signature
