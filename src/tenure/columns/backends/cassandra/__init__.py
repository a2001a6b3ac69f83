"""A store on Apache Cassandra or ScyllaDB, through the driver that they share."""
