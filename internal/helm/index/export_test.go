package index

// File is an index as a whole.
type File = file

// NewFile returns an empty one.
func NewFile() *File { return &file{} }

// ReadBlock is the quick reader.
func ReadBlock(text []byte, indent int) (*Version, error) { return readBlock(text, indent) }

// ErrUnusual is what the quick reader gives up with.
var ErrUnusual = errUnusual
