"""What all HTTP servers of the operator share, and the smallest of them.

listening            addresses and TLS
endpoints            probes and metrics; debugging, what the operator does at this moment
tokens, reviewing    who asks, and how rarely the API server is asked that
"""
