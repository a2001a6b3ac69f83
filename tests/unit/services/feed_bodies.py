"""Bodies that mean harm to whoever reads feeds."""

ENDLESS = (
    b"<rss version='2.0'><channel><item><title>t</title><description><![CDATA["
    + b"<!--" * 185_000
    + b"]]></description></item></channel></rss>"
)
"""feedparser looks for the end of each of these comments in all that follows."""
