#include "work.h"

// Streams and events are never given back to malloc, so that a handle used too
// late is always recognised.

static capture *captures;

typedef struct graph {
	u64 magic;
	queue work;
} graph;

#define GRAPH_MAGIC 0x4752415048ull
#define STREAM(s, p) stream *s = find_stream(p); if (!s) END(INVALID_HANDLE)
#define EVENT(e) do { if (!(e) || (e)->magic != EVENT_MAGIC) END(INVALID_HANDLE); } while (0)

int capture_forbids(int thread, int mode)
{
	if (mode == RELAXED)
		return 0;
	for (capture *c = captures; c; c = c->next)
		if ((c->thread == thread && c->mode != RELAXED) || (mode == GLOBAL && c->mode == GLOBAL))
			return 1;
	return 0;
}

void invalidate(int thread)
{
	for (capture *c = captures; c; c = c->next)
		if (c->mode == GLOBAL || (c->thread == thread && c->mode != RELAXED))
			c->invalid = 1;
}

static int going_on(capture *of)
{
	for (capture *c = captures; c; c = c->next)
		if (c == of)
			return 1;
	return 0;
}

CUresult cuStreamCreate(stream **to, unsigned flags)
{
	BEGIN("cuStreamCreate");
	IN_CONTEXT();
	if (flags > 1)
		END(INVALID_VALUE);
	stream *s = calloc(1, sizeof *s);
	*s = (stream){ STREAM_MAGIC, streams, current(), { NULL, NULL }, NULL };
	streams = s;
	counters[STREAMS]++;
	*to = s;
	END(OK);
}

CUresult cuStreamDestroy_v2(void *p)
{
	BEGIN("cuStreamDestroy_v2");
	IN_CONTEXT();
	STREAM(s, p);
	if (s->cap)
		s->cap->invalid = 1;
	run(s);
	s->magic = 0;
	counters[STREAMS]--;
	END(OK);
}

CUresult cuStreamSynchronize(void *p)
{
	BEGIN("cuStreamSynchronize");
	IN_CONTEXT();
	STREAM(s, p);
	if (s->cap) {
		s->cap->invalid = 1;
		END(CAPTURE_UNSUPPORTED);
	}
	SAFE();
	run(s);
	END(usable());
}

CUresult cuCtxSynchronize(void)
{
	BEGIN("cuCtxSynchronize");
	IN_CONTEXT();
	if (captures) {
		for (capture *c = captures; c; c = c->next)
			c->invalid = 1;
		END(CAPTURE_UNSUPPORTED);
	}
	run_all();
	END(usable());
}

CUresult cuStreamWaitEvent(void *p, event *e, unsigned flags)
{
	BEGIN("cuStreamWaitEvent");
	IN_CONTEXT();
	STREAM(s, p);
	EVENT(e);
	if (flags)
		END(INVALID_VALUE);
	if (e->cap) {
		if (!going_on(e->cap))
			END(CAPTURED_EVENT);
		s->cap = e->cap; // the stream takes part in the capture from now on
		END(OK);
	}
	if (s->cap) {
		s->cap->invalid = 1;
		END(CAPTURE_ISOLATION);
	}
	op o = { .kind = WAIT, .ev = e, .seq = e->recorded };
	END(enqueue(s, &o));
}

CUresult cuStreamIsCapturing(void *p, int *status)
{
	BEGIN("cuStreamIsCapturing");
	IN_CONTEXT();
	STREAM(s, p);
	*status = !s->cap ? 0 : s->cap->invalid ? 2 : 1;
	END(OK);
}

CUresult cuStreamBeginCapture_v2(void *p, int mode)
{
	BEGIN("cuStreamBeginCapture_v2");
	IN_CONTEXT();
	STREAM(s, p);
	if (!p || s->cap)
		END(CAPTURE_UNSUPPORTED);
	if (mode < GLOBAL || mode > RELAXED)
		END(INVALID_VALUE);
	capture *c = calloc(1, sizeof *c);
	*c = (capture){ captures, s, mode, thread_number(), 0, { NULL, NULL } };
	captures = s->cap = c;
	END(OK);
}

CUresult cuStreamEndCapture(void *p, graph **to)
{
	BEGIN("cuStreamEndCapture");
	IN_CONTEXT();
	STREAM(s, p);
	capture *c = s->cap;
	if (!c || c->origin != s)
		END(CAPTURE_UNMATCHED);
	if (c->mode != RELAXED && c->thread != thread_number())
		END(CAPTURE_WRONG_THREAD);
	for (capture **q = &captures; *q; q = &(*q)->next)
		if (*q == c) {
			*q = c->next;
			break;
		}
	for (stream *other = streams; other; other = other->next)
		if (other->cap == c)
			other->cap = NULL;
	*to = NULL;
	int invalid = c->invalid;
	if (invalid) {
		drop(&c->work);
		END(CAPTURE_INVALIDATED);
	}
	graph *g = calloc(1, sizeof *g);
	g->magic = GRAPH_MAGIC;
	for (op *o = c->work.first; o; o = o->next) {
		push(&g->work, o);
		o->staged = NULL; // the graph has it now
	}
	drop(&c->work);
	counters[GRAPHS]++;
	*to = g;
	END(OK);
}

static int is_graph(graph *g) { return g && g->magic == GRAPH_MAGIC; }

CUresult cuGraphInstantiateWithFlags(graph **to, graph *g, unsigned long long flags)
{
	BEGIN("cuGraphInstantiateWithFlags");
	IN_CONTEXT();
	if (!is_graph(g) || flags)
		END(INVALID_VALUE);
	graph *exec = calloc(1, sizeof *exec);
	exec->magic = GRAPH_MAGIC;
	for (op *o = g->work.first; o; o = o->next) {
		op copy = *o;
		if (o->staged)
			copy.staged = memcpy(malloc(o->size), o->staged, o->size);
		push(&exec->work, &copy);
	}
	counters[GRAPHS]++;
	*to = exec;
	END(OK);
}

CUresult cuGraphLaunch(graph *exec, void *p)
{
	BEGIN("cuGraphLaunch");
	IN_CONTEXT();
	STREAM(s, p);
	if (!is_graph(exec))
		END(INVALID_HANDLE);
	for (op *o = exec->work.first; o; o = o->next) {
		op copy = *o;
		if (o->staged)
			copy.staged = memcpy(malloc(o->size), o->staged, o->size);
		CHECK(enqueue(s, &copy));
	}
	END(OK);
}

static CUresult destroy(graph *g)
{
	if (!is_graph(g))
		return INVALID_HANDLE;
	g->magic = 0;
	drop(&g->work);
	counters[GRAPHS]--;
	return OK;
}

CUresult cuGraphDestroy(graph *g) { BEGIN("cuGraphDestroy"); END(destroy(g)); }
CUresult cuGraphExecDestroy(graph *g) { BEGIN("cuGraphExecDestroy"); END(destroy(g)); }

CUresult cuEventCreate(event **to, unsigned flags)
{
	BEGIN("cuEventCreate");
	IN_CONTEXT();
	if (flags > 7)
		END(INVALID_VALUE);
	event *e = calloc(1, sizeof *e);
	e->magic = EVENT_MAGIC;
	e->flags = flags;
	counters[EVENTS]++;
	*to = e;
	END(OK);
}

CUresult cuEventDestroy_v2(event *e)
{
	BEGIN("cuEventDestroy_v2");
	IN_CONTEXT();
	EVENT(e);
	e->magic = 0;
	counters[EVENTS]--;
	END(OK);
}

CUresult cuEventRecord(event *e, void *p)
{
	BEGIN("cuEventRecord");
	IN_CONTEXT();
	STREAM(s, p);
	EVENT(e);
	e->cap = s->cap;
	if (s->cap)
		END(s->cap->invalid ? CAPTURE_INVALIDATED : OK);
	op o = { .kind = RECORD, .ev = e, .seq = ++e->recorded };
	END(enqueue(s, &o));
}

static CUresult check_event(event *e)
{
	if (!e->cap)
		return OK;
	e->cap->invalid = 1;
	return CAPTURED_EVENT;
}

CUresult cuEventQuery(event *e)
{
	BEGIN("cuEventQuery");
	IN_CONTEXT();
	EVENT(e);
	CHECK(check_event(e));
	SAFE();
	END(e->done < e->recorded ? NOT_READY : OK);
}

CUresult cuEventSynchronize(event *e)
{
	BEGIN("cuEventSynchronize");
	IN_CONTEXT();
	EVENT(e);
	CHECK(check_event(e));
	SAFE();
	finish(e, e->recorded);
	END(usable());
}

CUresult cuEventElapsedTime(float *to, event *from, event *e)
{
	BEGIN("cuEventElapsedTime");
	IN_CONTEXT();
	EVENT(from);
	EVENT(e);
	if ((from->flags | e->flags) & 2 || !from->recorded || !e->recorded)
		END(INVALID_HANDLE);
	if (from->done < from->recorded || e->done < e->recorded)
		END(NOT_READY);
	*to = (float)((double)(e->time.tv_sec - from->time.tv_sec) * 1e3 + (double)(e->time.tv_nsec - from->time.tv_nsec) / 1e6);
	END(OK);
}
