"""Simulated gossip: how soon the dead are convicted, which nodes nobody may convict, and what all
nodes come to know, however the network and the nodes fail.
"""
