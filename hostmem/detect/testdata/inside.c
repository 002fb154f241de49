// Stands for an allocator that was built to be called by names of its own.
int je_mallctl(void);
int je_mallctl(void) { return 0; }
