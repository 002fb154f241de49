/* What cgo writes for the real library; here Go is stub.c. */
#include <stddef.h>
#include <stdint.h>

#include "bridge.h"

int ashlarGoMalloc(int device, uint64_t size, uint64_t stream, char *meta, struct reply *r);
void ashlarGoFree(int device, uint64_t addr, char *meta, struct reply *r);
int ashlarGoRecordStream(int device, uint64_t addr, uint64_t stream, char **text);
int ashlarGoRegion(int device, char *name, int *slot, char **text);
