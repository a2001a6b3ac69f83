"""A world of services: topics, queues and documents, as they are, under all faults.

Managers, network and faults are those of `sim/app`. Each process has the entities of all three
services, each in a pool of its own, and topics write into queues directly, without HTTP. Devices
use them: each has a queue, subscribes it to topics, drains it from any process, and subscribes
again when it is told of a loss.

- `device`, `ledgers`, `document_history`: what a device has received and was told, what was seen of
  a document, and the rules for these; they share no code with the services;
- `users`, `writers`, `world`, `trial`, `run`: their users; all of it together;
"""
