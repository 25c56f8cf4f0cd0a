package app

// hinted is an error with a remedy.
type hinted struct {
	error
	hint string
}

func (h hinted) Hint() string  { return h.hint }
func (h hinted) Unwrap() error { return h.error }

func hint(err error, remedy string) error { return hinted{err, remedy} }
