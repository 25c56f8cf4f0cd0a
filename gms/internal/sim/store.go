package sim

import "time"

type manifest int

const (
	absent manifest = iota
	valid
	void
)

type objectName struct {
	item  string
	token uint64
}

// object is what one attempt has left in the storage.
type object struct {
	data     bool
	manifest manifest
}

// store keeps objects; a manifest is made once, if it is absent, and is the commit there.
type store struct {
	remote
	objects map[objectName]*object
}

func newStore(w *world) *store {
	return &store{remote: remote{w: w}, objects: map[objectName]*object{}}
}

func (s *store) at(name objectName) *object {
	o := s.objects[name]
	if o == nil {
		o = &object{}
		s.objects[name] = o
	}
	return o
}

// upload may take long on its way, whatever becomes of who sent it.
func (s *store) upload(n *node, name objectName, then func(result, bool)) {
	late := time.Duration(0)
	if s.w.chance(10) {
		late = s.w.between(0, 8*time.Second)
	}
	s.call(n, func(answer func(result)) {
		s.w.after(late, func() {
			s.at(name).data = true
			answer(result{ok: true})
		})
	}, then)
}

// seal makes the manifest, if it is absent.
func (s *store) seal(n *node, name objectName, then func(result, bool)) {
	late := time.Duration(0)
	if s.w.chance(10) {
		late = s.w.between(0, 8*time.Second)
	}
	s.call(n, func(answer func(result)) {
		s.w.after(late, func() {
			o := s.at(name)
			if o.manifest == absent {
				if !o.data {
					s.w.fail("invariant 10: a manifest of %v without data", name)
				}
				o.manifest = valid
				s.w.check.sealed(name)
			}
			answer(result{ok: o.manifest == valid, void: o.manifest == void, exists: o.manifest == valid})
		})
	}, then)
}

// bury makes a void manifest, unless a good one is there: that attempt was complete.
func (s *store) bury(n *node, name objectName, then func(result, bool)) {
	s.call(n, func(answer func(result)) {
		o := s.at(name)
		if o.manifest == absent && s.w.plan.Mutant != NoTombstone {
			o.manifest = void
		}
		if o.manifest == valid {
			answer(result{exists: true})
			return
		}
		o.data = false
		answer(result{ok: true, void: true})
	}, then)
}

// garbage tells what can never count: below the entry's token, or of an item that is done and counted under another.
func (s *store) garbage(name objectName) bool {
	r := s.w.ledger.row(name.item)
	if r.state == completed {
		return name.token < r.token && name.token != r.copied
	}
	return name.token < r.entry
}

// sweep removes, under each item that has an entry, what tokens below the entry's left (rule 28), again and again; of an item
// that is done also what came of tokens that it was never counted under.
func (s *store) sweep() {
	for name, o := range s.objects {
		if !s.garbage(name) {
			continue
		}
		o.data = false
		if o.manifest == valid {
			o.manifest = void
		}
	}
	s.w.after(time.Second, s.sweep)
}
