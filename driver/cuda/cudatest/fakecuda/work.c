#include "work.h"

stream *streams;
static stream legacy[MAX_DEVICES];

stream *find_stream(void *p)
{
	device *d = current();
	if (p == NULL || p == (void *)1) {
		stream *s = &legacy[d->number];
		if (!s->magic) {
			*s = (stream){ STREAM_MAGIC, streams, d, { NULL, NULL }, NULL };
			streams = s;
		}
		return s;
	}
	for (stream *s = streams; s; s = s->next)
		if (s == p && s->magic == STREAM_MAGIC && s->dev == d)
			return s;
	return NULL;
}

void push(queue *q, const op *o)
{
	op *n = malloc(sizeof *n);
	*n = *o;
	n->next = NULL;
	if (!q->first)
		q->last = &q->first;
	*q->last = n;
	q->last = &n->next;
}

static void pop(queue *q)
{
	op *o = q->first;
	q->first = o->next;
	free(o->staged);
	free(o);
}

void drop(queue *q)
{
	while (q->first)
		pop(q);
}

// carry_out does one piece of work. Memory is looked up only now: what was
// freed or unmapped too early shows here.
static void carry_out(stream *s, op *o)
{
	int whole = (!o->device_dst || reachable(o->dst, o->size)) && (!o->device_src || reachable(o->src, o->size));
	switch (o->kind) {
	case COPY:
		if (whole)
			memmove((void *)o->dst, o->staged ? o->staged : (void *)o->src, o->size);
		break;
	case SET:
		if (whole)
			memset((void *)o->dst, o->value, o->size);
		break;
	case KERNEL:
		// Kernels name their memory by their first two arguments.
		if (o->size)
			whole = reachable(o->args[0], o->args[1] * 8);
		if (whole)
			o->fn(o->args);
		break;
	case RECORD:
		if (o->ev->done < o->seq) {
			o->ev->done = o->seq;
			clock_gettime(CLOCK_MONOTONIC, &o->ev->time);
		}
		break;
	case WAIT:
		break;
	}
	if (!whole)
		s->dev->sticky = ILLEGAL_ADDRESS;
}

// step does the next piece of work of a stream. If that waits for an event, the
// work before the event is done first.
static void step(stream *s)
{
	op *o = s->work.first;
	if (o->kind == WAIT)
		finish(o->ev, o->seq);
	carry_out(s, o);
	pop(&s->work);
}

void finish(event *e, u64 seq)
{
	for (stream *s = streams; s && e->done < seq; s = s->next) {
		op *o = s->work.first;
		while (o && !(o->kind == RECORD && o->ev == e && o->seq == seq))
			o = o->next;
		while (o && e->done < seq)
			step(s);
	}
}

void run(stream *s)
{
	while (s->work.first)
		step(s);
}

void run_all(void)
{
	for (stream *s = streams; s; s = s->next)
		run(s);
}

CUresult enqueue(stream *s, const op *o)
{
	if (s->cap) {
		if (s->cap->invalid)
			return CAPTURE_INVALIDATED;
		push(&s->cap->work, o);
		return OK;
	}
	push(&s->work, o);
	if (!lazy)
		run_all();
	return OK;
}

// Tests let queued work be done without waiting for it.
void fake_run(void)
{
	pthread_mutex_lock(&fake_lock);
	run_all();
	pthread_mutex_unlock(&fake_lock);
}

#define STREAM(s, p) stream *s = find_stream(p); if (!s) END(INVALID_HANDLE)

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, void *p)
{
	BEGIN("cuMemcpyHtoDAsync_v2");
	IN_CONTEXT();
	STREAM(s, p);
	if (!size || !reachable(dst, size))
		END(INVALID_VALUE);
	op o = { .kind = COPY, .dst = dst, .src = (u64)src, .size = size, .device_dst = 1 };
	if (!pinned(src, size))
		o.staged = memcpy(malloc(size), src, size);
	END(enqueue(s, &o));
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, void *p)
{
	BEGIN("cuMemcpyDtoHAsync_v2");
	IN_CONTEXT();
	STREAM(s, p);
	if (!size || !reachable(src, size))
		END(INVALID_VALUE);
	int wait = !pinned(dst, size);
	if (wait && s->cap)
		END(CAPTURE_UNSUPPORTED);
	op o = { .kind = COPY, .dst = (u64)dst, .src = src, .size = size, .device_src = 1 };
	CHECK(enqueue(s, &o));
	if (wait)
		run(s);
	END(usable());
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, void *p)
{
	BEGIN("cuMemcpyDtoDAsync_v2");
	IN_CONTEXT();
	STREAM(s, p);
	if (!size || !reachable(dst, size) || !reachable(src, size))
		END(INVALID_VALUE);
	op o = { .kind = COPY, .dst = dst, .src = src, .size = size, .device_dst = 1, .device_src = 1 };
	END(enqueue(s, &o));
}

// Any memory that the device reaches, and page-locked memory.
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, void *p)
{
	BEGIN("cuMemcpyAsync");
	IN_CONTEXT();
	STREAM(s, p);
	int to = reachable(dst, size), from = reachable(src, size);
	if (!size || !(to || pinned((void *)dst, size)) || !(from || pinned((void *)src, size)))
		END(INVALID_VALUE);
	op o = { .kind = COPY, .dst = dst, .src = src, .size = size, .device_dst = to, .device_src = from };
	END(enqueue(s, &o));
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t size, void *p)
{
	BEGIN("cuMemsetD8Async");
	IN_CONTEXT();
	STREAM(s, p);
	if (!size || !reachable(dst, size))
		END(INVALID_VALUE);
	op o = { .kind = SET, .dst = dst, .size = size, .device_dst = 1, .value = value };
	END(enqueue(s, &o));
}
