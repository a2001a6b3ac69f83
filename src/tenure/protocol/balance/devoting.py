"""A key that fills an owner alone gets an owner to itself, which gives everything else away."""

from tenure.protocol.balance.accounts import Account
from tenure.protocol.balance.pieces import Piece
from tenure.protocol.balance.round import Round


def devote(this: Round) -> None:
    """Give each key that fills an owner alone an owner to itself, which gives everything else
    away.
    """
    hot = [
        (point[1], point[0], this.accounts.by_incarnation[piece.owner])
        for piece in this.pieces
        for point in piece.points
        if point[1] > this.tuning.alone * this.share  # less is even, once hotter keys are out
    ]
    hosts = []
    weight, capacity = this.weight, this.capacity
    for rate, key, home in sorted(hot, key=lambda each: (-each[0], each[1])):
        piece = this.piece_at(home, key)
        if rate * capacity < weight * this.accounts.least_capacity:
            break
        host = _host_of(this, piece, rate)
        if host is None or rate * capacity < weight * host.capacity:
            continue
        if capacity <= host.capacity:
            break  # the last owner has all the rest
        weight -= rate
        capacity -= host.capacity
        if home is not host and not this.may_cut(home):
            break
        alone = this.single_out(piece, key)
        if alone.owner != host.incarnation:
            this.move(
                alone, host, "devote", f"a key with {this.amount_of(rate)} fills an owner alone"
            )
        host.devoted_to = alone
        hosts.append(host)
    this.share = weight / capacity
    this.accounts.rank()
    for account in hosts:
        _strip(this, account)


def _host_of(this: Round, piece: Piece, rate: float) -> Account | None:
    """The owner that should have the hot key in `piece` alone: its present one, or one with
    much less space.

    If the key is too much for its owner, that is a stronger owner, whatever that one has.
    """
    home = this.accounts.by_incarnation[piece.owner]
    if home.cordoned or home.turns or home.waits:
        return None
    if piece.rests:
        return None if home.devoted_to else home
    is_too_much = rate > this.tuning.high * this.share * home.capacity
    found = None if home.devoted_to else home
    best = (home.capacity, 2.0 if found is None else home.space / 2)
    for account in this.accounts.all:
        if not account.is_open or account is home or account.capacity < best[0]:
            continue
        is_stronger = is_too_much and account.capacity > best[0]
        if not is_stronger and (account.space >= best[1] or 2 * account.weight > rate):
            continue
        beside = sum(each.weight for each in account.pieces if each.rests)
        if beside <= (this.tuning.high - 1.0) * rate:  # pieces that rest stay there
            found, best = account, (account.capacity, account.space)
    return found


def _strip(this: Round, account: Account) -> None:
    """Move everything but its key to others: other hot keys first, since they move no state."""
    for _, key, _ in this.lumps(account):
        this.single_out(this.piece_at(account, key), key)
    rest = [piece for piece in account.pieces if piece is not account.devoted_to]
    for piece in sorted(rest, key=lambda piece: not piece.is_one_key):
        for part in this.in_grains(piece):
            if part is not piece:
                account.pieces.append(part)
            taker = this.accounts.open.nearest(account.zone, this.slack)
            if taker is not None and this.may_move(part, account):
                this.move(part, taker, "devote", f"{account.name} is for a hot key alone")
