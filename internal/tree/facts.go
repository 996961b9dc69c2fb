package tree

// ignoreFile is the name of the files that have ignore rules.
const ignoreFile = ".sourceignore"

// block is what tar is made of: a header is one, and a body is as many as it takes.
const block = 512

// Facts are about an entry and everything beneath it.
type Facts struct {
	// Weight is what the files and folders take in a tar archive, in bytes.
	Weight int64
	// IgnoreFile says that a file is called .sourceignore.
	IgnoreFile bool
}

// Facts are known, or found out by listing the folder, and those beneath about which nothing is known.
func (n *Node) Facts() (Facts, error) {
	switch {
	case n.Known != nil:
		return *n.Known, nil
	case n.Mode.IsRegular():
		return Facts{Weight: block + (n.Size+block-1)/block*block, IgnoreFile: n.Name == ignoreFile}, nil
	case !n.Mode.IsDir():
		return Facts{}, nil
	}
	children, err := n.List()
	if err != nil {
		return Facts{}, err
	}
	return Sum(children)
}

// Sum gives the facts about a folder with the children.
func Sum(children []*Node) (Facts, error) {
	all := Facts{Weight: block}
	for _, child := range children {
		facts, err := child.Facts()
		if err != nil {
			return Facts{}, err
		}
		all.Weight += facts.Weight
		all.IgnoreFile = all.IgnoreFile || facts.IgnoreFile
	}
	return all, nil
}
