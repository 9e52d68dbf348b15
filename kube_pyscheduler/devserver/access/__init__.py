"""Who a client is and what it may do: tokens, RBAC, and the reviews that ask about both.

No path and no verb of HTTP may live here. The HTTP layer and ``app`` import it.
"""
