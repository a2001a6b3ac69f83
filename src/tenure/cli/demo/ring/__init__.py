"""`tenure demo --columns`: a store on several nodes, while these are killed, added and moved."""
