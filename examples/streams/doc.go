// Streams hands memory from one stream to another. Freed memory is reused at
// once on its own stream; RecordStream tells the allocator that another stream
// uses it too, so that reuse waits for that stream.
package main
