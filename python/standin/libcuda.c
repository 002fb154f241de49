// The driver of a GPU that is not there: nothing has a context.
int cuDevicePrimaryCtxGetState(int d, unsigned *f, int *a) { if (f) *f = 0; if (a) *a = 0; return 0; }
int cuInit(unsigned f) { return 100; }
int cuDriverGetVersion(int *v) { *v = 0; return 0; }
int cuGetErrorString(int e, const char **s) { *s = "no GPU"; return 0; }
