// The work queued on streams.
#include "fake.h"

enum kind { COPY, SET, KERNEL, RECORD, WAIT };

typedef struct op {
	struct op *next;
	enum kind kind;
	u64 dst, src, size;
	int device_dst, device_src; // which of the two the device must reach
	void *staged;               // a copy of the source, if it may change meanwhile
	int value;
	kernel fn;
	u64 args[8];
	event *ev;
	u64 seq; // of the record
} op;

typedef struct { op *first, **last; } queue;

struct event {
	u64 magic;
	unsigned flags;
	u64 recorded, done; // counts of records
	struct timespec time;
	capture *cap; // last recorded into it
};

struct stream {
	u64 magic;
	stream *next;
	device *dev;
	queue work;
	capture *cap;
};

struct capture {
	capture *next;
	stream *origin;
	int mode, thread, invalid;
	queue work;
};

#define STREAM_MAGIC 0x5354524541ull
#define EVENT_MAGIC 0x4556454e54ull

extern stream *streams;

stream *find_stream(void *handle); // of the current context, or NULL
CUresult enqueue(stream *s, const op *o);
void run(stream *s);                 // does the work of a stream, and what it waits for
void finish(event *e, u64 seq);      // does the work before a record of an event
void push(queue *q, const op *o);
void drop(queue *q);
