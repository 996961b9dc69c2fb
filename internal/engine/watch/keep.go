package watch

import "sluice.dev/sluice/internal/engine/cluster"

// join adds an owner. It is known at once what the owner has, unless objects were seen and not kept, which may be its own.
func (s *subjectWatch) join(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[value] == name {
		return
	}
	s.owners[value] = name
	if s.missed && s.synced {
		s.waiting.Insert(value)
		signal(s.again)
	}
	s.recount()
}

// signal is never waited for: one that was not taken yet says the same.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// leave removes an owner, closes the watch if that was the last one, and says whether it did.
func (s *subjectWatch) leave(value string) (closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owners, value)
	s.waiting.Delete(value)
	if len(s.owners) > 0 {
		s.recount()
		return false
	}
	s.closed = true
	s.cancel()
	s.watcher.spare.Add(-int64(s.spare))
	s.objects, s.spare = nil, 0
	return true
}

// wanted says whether an owner here has the object.
func (s *subjectWatch) wanted(object *Meta) bool {
	_, wanted := s.owners[object.PartOf]
	return wanted
}

// recount brings the count of spare objects up to date when the owners changed.
func (s *subjectWatch) recount() {
	s.watcher.spare.Add(-int64(s.spare))
	s.spare = 0
	for name, object := range s.objects {
		if !s.wanted(object) && !s.takeSpare() {
			delete(s.objects, name)
		}
	}
}

// replace keeps what is known now of the object, and gives who is to hear of it.
func (s *subjectWatch) replace(name string, now *Meta) []notice {
	old := s.objects[name]
	if s.keep(name, now); old == nil {
		return s.notices(name, now, Added)
	}
	if old.PartOf != now.PartOf {
		return append(s.notices(name, old, Deleted), s.notices(name, now, Added)...)
	}
	switch {
	case old.ResourceVersion == now.ResourceVersion:
		// It is our own write, or a list told it already.
		return nil
	case now.differs(old):
		return s.notices(name, now, Modified)
	default:
		return s.notices(name, now, Touched)
	}
}

// remove forgets the object, and gives who is to hear of it.
func (s *subjectWatch) remove(name string) []notice {
	old := s.objects[name]
	if old == nil {
		return nil
	}
	s.drop(name)
	if old.Ended && s.wanted(old) {
		s.ended[name] = old.UID
	}
	return s.notices(name, old, Deleted)
}

// notices tell the object's owner, unless that waits to hear of the whole subject.
func (s *subjectWatch) notices(name string, object *Meta, event Event) []notice {
	owner, wants := s.owners[object.PartOf]
	if !wants || s.waiting.Has(object.PartOf) {
		return nil
	}
	return []notice{{owner, cluster.Ref{GVK: s.subject.GVK, Namespace: s.subject.Namespace, Name: name, UID: object.UID}, event}}
}

// keep remembers the object, unless it is spare and there are too many of these.
func (s *subjectWatch) keep(name string, object *Meta) {
	s.drop(name)
	delete(s.ended, name)
	if s.wanted(object) || s.takeSpare() {
		s.objects[name] = object
	}
}

// takeSpare counts one more spare object, unless there are too many.
func (s *subjectWatch) takeSpare() bool {
	if s.watcher.spare.Add(1) > s.watcher.spares {
		s.watcher.spare.Add(-1)
		s.missed = true
		return false
	}
	s.spare++
	return true
}

func (s *subjectWatch) drop(name string) {
	object := s.objects[name]
	if object == nil {
		return
	}
	delete(s.objects, name)
	if !s.wanted(object) {
		s.spare--
		s.watcher.spare.Add(-1)
	}
}
