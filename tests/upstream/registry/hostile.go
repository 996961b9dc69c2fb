package registry

import (
	"archive/tar"
	"fmt"
	"strings"
)

const blockSize = 512

// RawEntry is an entry in the old way of ustar, with nothing checked and its checksum right: size is what the
// header claims, whatever the content's length is. The content is filled up to whole blocks.
func RawEntry(typeflag byte, name, linkname string, size int64, content string) Entry {
	block := make([]byte, blockSize, blockSize+len(content)+blockSize)
	copy(block[0:100], name)
	copy(block[100:], "0000644\x00")
	copy(block[108:], "0000000\x00")
	copy(block[116:], "0000000\x00")
	copy(block[124:], fmt.Sprintf("%011o\x00", size))
	copy(block[136:], fmt.Sprintf("%011o\x00", 1577836800)) // 2020-01-01
	copy(block[148:], "        ")
	block[156] = typeflag
	copy(block[157:257], linkname)
	copy(block[257:], "ustar\x0000")
	sealHeader(block)
	return Entry{Raw: padded(append(block, content...))}
}

// PAX is an extended header for the entry after it; the records are written in the order given, as key and value.
func PAX(records ...[2]string) Entry { return extended(tar.TypeXHeader, records) }

// GlobalPAX is an extended header for all entries after it.
func GlobalPAX(records ...[2]string) Entry { return extended(tar.TypeXGlobalHeader, records) }

// Sparse is a file in the old sparse form of GNU tar: it claims a real size of which only the content is there.
func Sparse(name, content string, realSize int64) Entry {
	entry := RawEntry(tar.TypeGNUSparse, name, "", int64(len(content)), content)
	block := entry.Raw[:blockSize]
	copy(block[257:], "ustar  \x00")
	copy(block[386:], fmt.Sprintf("%011o\x00%011o\x00", realSize-int64(len(content)), len(content)))
	copy(block[483:], fmt.Sprintf("%011o\x00", realSize))
	sealHeader(block)
	return entry
}

// Hostile are layers, as tar files, that nobody should unpack as they are, by what they try. Each begins with the
// harmless file "good.yaml".
func Hostile() (map[string][]byte, error) {
	long := strings.Repeat("a/", 5000) + "deep"
	layers := map[string][]Entry{
		"symlink out":              {Symlink("link", "/etc"), File("link/passwd", "owned")},
		"symlink up":               {Symlink("link", "../../.."), File("link/owned", "owned")},
		"symlink inside":           {Symlink("link", "good.yaml")},
		"hardlink out":             {Hardlink("link", "/etc/passwd")},
		"hardlink inside":          {Hardlink("link", "good.yaml")},
		"character device":         {Special("null", tar.TypeChar)},
		"block device":             {Special("disk", tar.TypeBlock)},
		"fifo":                     {Special("pipe", tar.TypeFifo)},
		"absolute name":            {File("/etc/owned", "owned")},
		"name up":                  {File("../owned", "owned")},
		"name up in the middle":    {File("a/../../owned", "owned")},
		"folder up":                {Folder("../owned")},
		"duplicate":                {File("twice", "one"), File("twice", "two")},
		"duplicate by spelling":    {File("twice", "one"), File("./twice", "two"), File("a/../twice", "three")},
		"file becomes folder":      {File("both", "file"), File("both/child", "child")},
		"folder becomes file":      {File("both/child", "child"), File("both", "file")},
		"backslash":                {File(`..\owned`, "owned")},
		"control characters":       {File("a\nb\x1b[2J", "owned")},
		"empty name":               {RawEntry(tar.TypeReg, "", "", 5, "owned")},
		"only a dot":               {RawEntry(tar.TypeReg, ".", "", 5, "owned")},
		"deep name":                {File(long, "deep")},
		"pax path":                 {PAX([2]string{"path", "../owned"}), File("harmless", "owned")},
		"pax path twice":           {PAX([2]string{"path", "harmless"}, [2]string{"path", "/owned"}), File("harmless", "owned")},
		"pax path with nul":        {PAX([2]string{"path", "harmless\x00/../../owned"}), File("harmless", "owned")},
		"pax link":                 {PAX([2]string{"linkpath", "/etc/passwd"}), Symlink("link", "good.yaml")},
		"pax size":                 {PAX([2]string{"size", "9223372036854775807"}), File("large", "small")},
		"pax negative size":        {PAX([2]string{"size", "-1"}), File("negative", "small")},
		"global pax path":          {GlobalPAX([2]string{"path", "../owned"}), File("harmless", "owned")},
		"pax before the end":       {PAX([2]string{"path", "nothing"})},
		"sparse":                   {Sparse("sparse", "end", 1<<32)},
		"pax sparse":               {PAX([2]string{"GNU.sparse.major", "1"}, [2]string{"GNU.sparse.minor", "0"}, [2]string{"GNU.sparse.name", "../owned"}, [2]string{"GNU.sparse.realsize", "4294967296"}), File("sparse", "1\n0\n3\n"+strings.Repeat("\x00", blockSize-6)+"end")},
		"unknown type":             {RawEntry('Z', "unknown", "", 5, "owned")},
		"content cut off":          {RawEntry(tar.TypeReg, "cut", "", 1<<20, "short")},
		"setuid":                   {{Header: tar.Header{Typeflag: tar.TypeReg, Name: "setuid", Mode: 0o6755, Uid: 0}, Content: []byte("owned")}},
		"whiteout of another file": {File(".wh.good.yaml", "")},
	}
	files := make(map[string][]byte, len(layers))
	for name, entries := range layers {
		file, err := Tar(append([]Entry{File("good.yaml", "good: true\n")}, entries...)...)
		if err != nil {
			return nil, fmt.Errorf("hostile layer %q: %w", name, err)
		}
		files[name] = file
	}
	return files, nil
}

// Bomb is a layer of a file with size zero bytes, as gzip: about a thousandth of it.
func Bomb(size int64) ([]byte, error) {
	return TarGzip(File("good.yaml", "good: true\n"), Entry{
		Header: tar.Header{Typeflag: tar.TypeReg, Name: "bomb"}, Content: make([]byte, size),
	})
}

func extended(typeflag byte, records [][2]string) Entry {
	var body strings.Builder
	for _, record := range records {
		// A record's length counts its own digits.
		rest := " " + record[0] + "=" + record[1] + "\n"
		length := len(rest) + 1
		for len(fmt.Sprint(length))+len(rest) != length {
			length++
		}
		fmt.Fprintf(&body, "%d%s", length, rest)
	}
	return RawEntry(typeflag, "PaxHeaders.0/entry", "", int64(body.Len()), body.String())
}

func sealHeader(block []byte) {
	copy(block[148:], "        ")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
}

func padded(raw []byte) []byte {
	return append(raw, make([]byte, (blockSize-len(raw)%blockSize)%blockSize)...)
}
