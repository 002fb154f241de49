// Package hub keeps messages in NATS JetStream: in a folder of this machine,
// served inside this process without a port, or in a cluster that is named by its
// URL. It is the only package that imports NATS.
//
// One process owns a folder, by a lock. Other processes of the same user reach it
// over a unix socket in the folder; when the owner has gone, one of them takes its
// place. Every call has a deadline, and is tried again
// if the server did not answer.
//
// The owner looks for damage before the server does, which would remove what it cannot
// read: mender puts it aside, and known says what should be there.
package hub
