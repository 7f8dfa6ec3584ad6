"""Parts of the check's first mode: what is wrong on this device, in enough words to mend it without another run?"""
