def truncate_note(m):
    b = m.encode()
    return m if len(b) <= 1024 else b[:1020].decode() + " ..."
