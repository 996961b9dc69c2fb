package upstream

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
)

// answers says that the fault answers the request itself and git never sees it.
func (f Fault) answers() bool {
	return f.status != 0 || f.garbage || f.endless || f.drop || f.hang
}

// answer answers in git's place. An error asks for the connection to be closed.
func (f Fault) answer(w *answer, r *http.Request, kind Kind) error {
	switch {
	case f.drop:
		return errBroken
	case f.hang:
		<-r.Context().Done()
		return errBroken
	case f.redirect != "":
		w.Header().Set("Location", f.redirect+r.URL.RequestURI())
		w.WriteHeader(f.status)
		return nil
	case f.status != 0:
		maps.Copy(w.Header(), f.header)
		w.WriteHeader(f.status)
		_, err := w.Write([]byte(f.body))
		return err
	case f.garbage:
		return garbage(w, kind)
	default:
		return endless(w, kind)
	}
}

func garbage(w *answer, kind Kind) error {
	w.Header().Set("Content-Type", contentType(kind))
	random := rand.New(rand.NewPCG(1, 2)) // The same garbage on every run.
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	_, err := w.Write(noise)
	return err
}

func endless(w *answer, kind Kind) error {
	w.Header().Set("Content-Type", contentType(kind))
	first := map[Kind]string{
		InfoRefs: "001e# service=git-upload-pack\n0000", PushRefs: "001f# service=git-receive-pack\n0000",
		Fetch: "000dpackfile\n",
	}
	if _, err := w.Write([]byte(first[kind])); err != nil {
		return err
	}
	for i := 0; ; i++ {
		line := fmt.Sprintf("%040x refs/heads/branch-%012d\n", i+1, i)
		if kind == Fetch || kind == Push {
			line = "\x02" + line
		}
		if _, err := fmt.Fprintf(w, "%04x%s", len(line)+4, line); err != nil {
			return err
		}
	}
}

func contentType(kind Kind) string {
	switch kind {
	case InfoRefs:
		return "application/x-git-upload-pack-advertisement"
	case PushRefs:
		return "application/x-git-receive-pack-advertisement"
	case Push:
		return "application/x-git-receive-pack-result"
	default:
		return "application/x-git-upload-pack-result"
	}
}
