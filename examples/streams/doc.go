// Streams hands memory from one stream to another. Freed memory is reused at
// once on its own stream; RecordStream tells the allocator that another stream
// uses it too, so that it waits for that one.
package main
