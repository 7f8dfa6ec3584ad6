"""Parts of the check's second mode: how near are times to what the device can do, and to other libraries'?"""
