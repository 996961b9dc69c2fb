package git

import (
	"io"
	"strings"
	"testing"
)

// FuzzReport reads what servers say became of a push, on a band and by itself.
func FuzzReport(f *testing.F) {
	pkt := func(lines ...string) (text []byte) {
		for _, line := range lines {
			text = appendLine(text, "%s", line)
		}
		return appendFlush(text)
	}
	id := strings.Repeat("ab", 20)
	f.Add(false, pkt("unpack ok", "ok refs/heads/main", "ng refs/heads/x hook declined"))
	f.Add(false, pkt("unpack ok", "ok refs/heads/main", "option refname refs/heads/y", "option new-oid "+id))
	f.Add(false, pkt("unpack index-pack failed", "ng refs/heads/main unpacker error"))
	f.Add(true, []byte("0009\x02words0022\x01000eunpack ok\n000aok refs/a\n00000000"))
	f.Add(true, []byte("000a\x03fatal"))
	f.Add(false, []byte("ffffunpack"))
	const most = 3
	f.Fuzz(func(t *testing.T, banded bool, wire []byte) {
		in := newPacketReader(strings.NewReader(string(wire)))
		said := &opening{}
		if banded {
			in = newPacketReader(&sideband{packets: in, said: said})
		}
		r, err := readReport(in, most)
		if len(said.String()) > maxStderr {
			t.Errorf("%d bytes of words are kept", len(said.String()))
		}
		if len(r.verdicts) > most {
			t.Errorf("%d verdicts", len(r.verdicts))
		}
		if err != nil {
			return
		}
		p := &push{}
		for ref, v := range r.verdicts {
			if !validRefName(ref) || v.options > maxOptions {
				t.Errorf("%q: %+v", ref, v)
			}
			p.commands = append(p.commands, command{Update: Update{Ref: ref, New: id}})
		}
		if err := p.judge(r, said.String()); err != nil {
			t.Error(err)
		}
		for i := range p.commands {
			c := &p.commands[i]
			if isMoved := r.unpack == "" && strings.Contains(string(wire), "ok "+c.Ref); c.err == nil && !isMoved {
				t.Errorf("%s counts as moved", c.Ref)
			}
		}
	})
}

// TestPacksOfPushesAreReadAgain by what reads those of servers, and have the length that was announced.
func TestPacksOfPushesAreReadAgain(t *testing.T) {
	t.Parallel()
	o := (&Client{options: Options{TempDir: t.TempDir()}.withDefaults()}).Compose(t.Context())
	defer func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}()
	sizes := []int{0, 1, 15, 16, 17, 2047, 2048, 1 << 18, 1<<18 + 1}
	var files []File
	for _, size := range sizes {
		files = append(files, File{Path: strings.Repeat("f", 1+len(files)), Mode: 0o644, Content: []byte(strings.Repeat("x", size))})
	}
	who := Identity{Name: "Ada", Email: "a@b.c"}
	who.When = who.When.AddDate(2000, 0, 0)
	id, err := o.Commit(t.Context(), NewCommit{Edits: []Edit{{Files: files}}, Author: who, Committer: who})
	if err != nil {
		t.Fatal(err)
	}
	p := &push{PushRequest: PushRequest{Objects: o}}
	m, err := p.message(t.Context(), []*command{{Update: Update{Ref: "refs/heads/main", New: id}}}, []string{"report-status"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // It can be sent again.
		var wire strings.Builder
		if _, err := io.Copy(&wire, m.open()); err != nil {
			t.Fatal(err)
		}
		if int64(wire.Len()) != m.size {
			t.Errorf("%d bytes, announced %d", wire.Len(), m.size)
		}
		_, body, _ := strings.Cut(wire.String(), "0000PACK")
		again, err := indexWithin(t.Context(), []byte("PACK"+body), o.limits)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(again.objects); got != len(sizes)+2 {
			t.Errorf("%d objects", got)
		}
		for _, object := range o.fresh.objects {
			if _, ok := again.lookUp(object.hash); !ok {
				t.Errorf("%s is not in it", object.hash)
			}
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}
