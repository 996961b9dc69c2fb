package pkgrepo

import (
	"strings"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/tree"
)

// folders are the packages on the branch.
type folders struct {
	// outermost are those that are in no other package, in Git's order.
	outermost []git.Found
	// beyond are the packages in those that are too many, which are named only.
	beyond []string
	// ignored are those whose names are not safe.
	ignored []string
}

// findFolders finds the packages on the branch. What is in a package is part of it, Kptfiles as well. A Kptfile in the
// repository's directory itself makes no package: it would have no name.
func (e *explorer) findFolders(commit *git.Commit) (folders, error) {
	var found folders
	last := ""
	err := commit.Find(kpt.KptfileName, func(f git.Found) error {
		pkg, ok := e.below(f.Dir)
		if !ok || f.Dir == tree.Root || last != "" && strings.HasPrefix(f.Dir, last+"/") {
			return nil
		}
		last = f.Dir
		if isSafe := CheckPath(f.Dir) == nil; !isSafe {
			found.ignored = append(found.ignored, "folder "+shown(f.Dir))
			return nil
		}
		if len(found.outermost) == e.depot.options.MaxPackages {
			found.beyond = append(found.beyond, strings.Clone(pkg))
			return nil
		}
		found.outermost = append(found.outermost, f)
		return nil
	})
	return found, err
}
