package git

// Read is how many entries of its tree were read.
func (c *Commit) Read() int64 { return c.planter.files.Load() }

// Waiting is how many SSH connections wait for the next conversation.
func (c *Client) Waiting() int { return c.ssh.waiting.Len() }
