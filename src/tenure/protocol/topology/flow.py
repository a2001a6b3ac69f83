"""The cheapest way to send a flow through a network: all that placing replicas needs of a solver.

Costs are compared like tuples, as far as integers allow: their caller makes one thing dearer than
all of the next together. Augmenting along cheapest paths (Dijkstra with potentials) finds the
cheapest of all flows; a network of 64 nodes takes a second, and there is one such question for each
change.
"""

from heapq import heappop, heappush

UNREACHED = -1


class FlowNetwork:
    """Points by number, and edges between them."""

    def __init__(self) -> None:
        self._to: list[int] = []
        self._room: list[int] = []
        self._cost: list[int] = []
        self._edges: list[list[int]] = []

    def point(self) -> int:
        """A new point."""
        self._edges.append([])
        return len(self._edges) - 1

    def edge(self, source: int, target: int, room: int, cost: int = 0) -> int:
        """A new edge, for `room` units at `cost` each, which is not negative."""
        for start, end, free, price in ((source, target, room, cost), (target, source, 0, -cost)):
            self._edges[start].append(len(self._to))
            self._to.append(end)
            self._room.append(free)
            self._cost.append(price)
        return len(self._to) - 2

    def used(self, edge: int) -> int:
        """How much flows along an edge."""
        return self._room[edge ^ 1]

    def send(self, source: int, target: int) -> None:
        """Send as much as can be sent, as cheaply as that can be."""
        potentials = [0] * len(self._edges)
        while True:
            distances, ways = self._cheapest(source, potentials)
            if ways[target] == UNREACHED:
                return
            furthest = max(distances)
            for point, distance in enumerate(distances):
                potentials[point] += distance if distance != UNREACHED else furthest
            self._augment(source, target, ways)

    def _cheapest(self, source: int, potentials: list[int]) -> tuple[list[int], list[int]]:
        distances, ways = [UNREACHED] * len(potentials), [UNREACHED] * len(potentials)
        distances[source] = 0
        queue = [(0, source)]
        while queue:
            distance, point = heappop(queue)
            if distance > distances[point]:
                continue
            for edge in self._edges[point]:
                if self._room[edge]:
                    end = self._to[edge]
                    through = distance + self._cost[edge] + potentials[point] - potentials[end]
                    if distances[end] == UNREACHED or through < distances[end]:
                        distances[end], ways[end] = through, edge
                        heappush(queue, (through, end))
        return distances, ways

    def _augment(self, source: int, target: int, ways: list[int]) -> None:
        path = []
        while target != source:
            path.append(ways[target])
            target = self._to[ways[target] ^ 1]
        room = min(self._room[edge] for edge in path)
        for edge in path:
            self._room[edge] -= room
            self._room[edge ^ 1] += room
