// Package secret is how passwords and keys are carried, and how they are kept out of texts that come from elsewhere.
//
// A [Secret] cannot be printed or marshalled: every verb of fmt shows ***, within other values too; JSON and texts
// (slog's included) get ***; what was marshalled cannot be read back; gob and other binary forms are refused. Only
// [Secret.Reveal] hands it out, so that a search for that word finds every place where a secret leaves its cover:
//
//	key := secret.New(os.Getenv("KEY"))
//	client := connect(endpoint, key.Reveal())     // the one use
//	log.Info("connected", "key", key)             // key=***
//
// Other programs and libraries do not know the type, and repeat passwords in what they say. A [Redactor] knows the
// secrets by value and replaces them wherever they turn up, as they are or encoded:
//
//	clean := secret.NewRedactor(key)
//	return fmt.Errorf("upload: %s", clean.Text(stderr))
//	return clean.Error(err)                       // same chain for errors.Is and errors.As, other text
//
// Invariants: an empty secret hides nothing and is never replaced. Secrets of one or two bytes are not replaced either,
// because they would turn every text into stars; whoever chooses such a password has none. Replacing takes the longest
// form first, so that no rest of a longer one is left. Values are immutable and safe for concurrent use.
package secret
