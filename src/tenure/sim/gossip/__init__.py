"""Simulated gossip: how soon the dead are convicted, whom nobody may convict, and what all come to
know, however the network and the nodes fail.
"""
