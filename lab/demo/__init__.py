"""The demos beside that of the first page, which is in `tenure.cli.demo`.

- `caches`: products that many frontends read, each from its own cache; every read is judged;
- `mesh`: the papers' Live Mesh scenario with the services;
- `ring`: a store on several nodes, while these are killed, added and moved;
- `inbox`: the search of the Cassandra paper, beside its figures;
- `command`: their options.
"""
