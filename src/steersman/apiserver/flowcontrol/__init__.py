"""Priority and fairness: who waits when there is more to do than the server can.

Source: KEP-1040, apiserver `pkg/util/flowcontrol`.
"""
