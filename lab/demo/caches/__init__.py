"""`python -m lab demo caches`: products that many frontends read, each from its own cache.

Owners keep the products, with a database behind them, so that no crash loses one. Frontends read
through a `Cache` each, and write through it. The demo kills owners, stops them, has them hand over
what they have, and stops frontends. It judges every read by a record of its own: none may return
less than what was written, and answered, before the read began.

    run              the whole, from start to summary
    service          its processes
    products         what an owner has: memory, and the database behind it
    cache_owner      a process that owns products
    cache_frontend   a process that reads and writes them
    cache_reports    what its processes are told, and tell
    read_record      what was read and written, and when
    stale_reads      which reads were stale, judged from that alone
    cache_faults     what the demo does to the service
    cache_view       a way to show it, in a terminal or without
    cache_summary    what it came to
"""
