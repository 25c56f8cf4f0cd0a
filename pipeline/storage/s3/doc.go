// Package s3 keeps objects in a bucket of Amazon S3, or of anything that speaks its protocol.
//
//	bucket, err := s3.Open(s3.Options{
//		Endpoint: "https://s3.eu-central-1.amazonaws.com", Region: "eu-central-1", Bucket: "backups", Prefix: "shop",
//		AccessKey: id, SecretKey: secret.New(key),
//	})
//	defer bucket.Close()
//	n, err := bucket.AbortUploads(ctx, time.Now().Add(-8*24*time.Hour)) // now and then: what dead processes left behind
//
// An object that ends within its first part is one PutObject; a longer one is a multipart upload, whose completion makes
// it visible at once. Nothing is known of the length beforehand: parts have 8 MiB, and grow so that 10,000 of them (the
// protocol's limit) hold any object (partSize). [storage.WithEstimate] makes them fit from the start.
//
// # What the bucket must be able to do
//
// If-None-Match and If-Match on PutObject and CompleteMultipartUpload, atomically: that is what makes "if absent" true.
// Amazon, MinIO, Ceph (from Squid) and versitygw do. A server that ignores them loses the guarantee and does not say so.
// The credentials need GetObject, PutObject, ListBucket, ListBucketMultipartUploads, AbortMultipartUpload and, unless
// they are append-only, DeleteObject. What they may not do is storage.ErrPermanent and says "access denied".
//
// # Invariants
//
//   - Put is all or nothing. A source that fails or a context that ends aborts the upload, under a context of its own;
//     what a killed process leaves is invisible, and AbortUploads removes it.
//   - Only the last step can make an object, and it is never given up half-way: once asked for, its answer is awaited
//     (bounded by Options.Stall), whatever becomes of ctx. When the answer is lost, the object itself is asked whether it
//     is ours: each Put marks its object with a number of its own.
//   - Memory of a Put is two parts (one is read while the other is sent), 16 MiB as a rule, and of small objects only
//     what they have. Other calls take some KiB.
//   - Every part carries its CRC-32C, which the server compares; over plain HTTP each 64 KiB are signed too.
//   - No call waits for ever: a connection on which no byte moves for Options.Stall is given up, and a request is made at
//     most four times. A stream is never begun anew: a part is repeated from memory, a download goes on where it broke off
//     as long as it is the same version.
//   - A version is the ETag. It follows the content: equal contents may have equal versions.
//   - A bucket that is not there is storage.ErrPermanent, never storage.ErrNotFound and never an empty listing.
//   - "Object or folder" (package storage) is looked up before a Put, so two Puts at once may still break it; S3 itself
//     does not mind.
//   - Object lock (Options.Lock) is set on every object but the owner's. A bucket with lock keeps versions: Delete then
//     hides an object, and its bytes go when the lock has passed and the bucket's lifecycle rule removes old versions. So
//     that nothing is hidden which the lock is to keep, [storage.Locker] says until when it does.
//
// Keys are the prefix, a slash, and the object's name as it is. Secrets never show in an error.
package s3
