package cuda

// symbol is a function of the driver.
type symbol int

// The functions this package calls. Where the driver exports several versions
// of one, the suffix says which. Functions before symRequired are there since
// CUDA 10.2 and Open insists on them; a method that needs a missing one of the
// others returns ErrOldDriver.
const (
	symInit symbol = iota
	symDriverGetVersion
	symGetErrorName
	symGetErrorString
	symDeviceGetCount
	symDeviceGet
	symDeviceGetName
	symDeviceGetUUID
	symDeviceGetAttribute
	symDeviceGetPCIBusID
	symDeviceTotalMem
	symPrimaryCtxRetain
	symPrimaryCtxGetState
	symCtxGetCurrent
	symCtxPushCurrent
	symCtxPopCurrent
	symCtxSynchronize
	symThreadExchangeCaptureMode
	symMemGetInfo
	symMemAlloc
	symMemFree
	symMemHostAlloc
	symMemFreeHost
	symMemcpyHtoDAsync
	symMemcpyDtoHAsync
	symMemcpyDtoDAsync
	symMemcpyAsync
	symMemsetD8Async
	symStreamCreate
	symStreamDestroy
	symStreamSynchronize
	symStreamWaitEvent
	symStreamIsCapturing
	symStreamBeginCapture
	symStreamEndCapture
	symEventCreate
	symEventDestroy
	symEventRecord
	symEventQuery
	symEventSynchronize
	symEventElapsedTime
	symMemAllocManaged
	symMemPrefetchAsync
	symMemAdvise
	symMemAddressReserve
	symMemAddressFree
	symMemCreate
	symMemRelease
	symMemMap
	symMemUnmap
	symMemSetAccess
	symMemGetAllocationGranularity
	symModuleLoadDataEx
	symModuleUnload
	symModuleGetFunction
	symLaunchKernel
	symGraphDestroy
	symGraphLaunch
	symGraphExecDestroy

	symRequired

	symPrimaryCtxRelease
	symPrimaryCtxReleaseOld
	symDeviceGetUUIDMIG
	symGraphInstantiateWithFlags
	symDeviceGetDefaultMemPool
	symMemAllocFromPoolAsync
	symMemFreeAsync
	symMemPoolGetAttribute
	symMemPoolSetAttribute
	symMemPoolTrimTo

	symbols
)

var symbolNames = [symbols]string{
	symInit:                        "cuInit",
	symDriverGetVersion:            "cuDriverGetVersion",
	symGetErrorName:                "cuGetErrorName",
	symGetErrorString:              "cuGetErrorString",
	symDeviceGetCount:              "cuDeviceGetCount",
	symDeviceGet:                   "cuDeviceGet",
	symDeviceGetName:               "cuDeviceGetName",
	symDeviceGetUUID:               "cuDeviceGetUuid",
	symDeviceGetAttribute:          "cuDeviceGetAttribute",
	symDeviceGetPCIBusID:           "cuDeviceGetPCIBusId",
	symDeviceTotalMem:              "cuDeviceTotalMem_v2",
	symPrimaryCtxRetain:            "cuDevicePrimaryCtxRetain",
	symPrimaryCtxGetState:          "cuDevicePrimaryCtxGetState",
	symCtxGetCurrent:               "cuCtxGetCurrent",
	symCtxPushCurrent:              "cuCtxPushCurrent_v2",
	symCtxPopCurrent:               "cuCtxPopCurrent_v2",
	symCtxSynchronize:              "cuCtxSynchronize",
	symThreadExchangeCaptureMode:   "cuThreadExchangeStreamCaptureMode",
	symMemGetInfo:                  "cuMemGetInfo_v2",
	symMemAlloc:                    "cuMemAlloc_v2",
	symMemFree:                     "cuMemFree_v2",
	symMemHostAlloc:                "cuMemHostAlloc",
	symMemFreeHost:                 "cuMemFreeHost",
	symMemcpyHtoDAsync:             "cuMemcpyHtoDAsync_v2",
	symMemcpyDtoHAsync:             "cuMemcpyDtoHAsync_v2",
	symMemcpyDtoDAsync:             "cuMemcpyDtoDAsync_v2",
	symMemcpyAsync:                 "cuMemcpyAsync",
	symMemsetD8Async:               "cuMemsetD8Async",
	symStreamCreate:                "cuStreamCreate",
	symStreamDestroy:               "cuStreamDestroy_v2",
	symStreamSynchronize:           "cuStreamSynchronize",
	symStreamWaitEvent:             "cuStreamWaitEvent",
	symStreamIsCapturing:           "cuStreamIsCapturing",
	symStreamBeginCapture:          "cuStreamBeginCapture_v2",
	symStreamEndCapture:            "cuStreamEndCapture",
	symEventCreate:                 "cuEventCreate",
	symEventDestroy:                "cuEventDestroy_v2",
	symEventRecord:                 "cuEventRecord",
	symEventQuery:                  "cuEventQuery",
	symEventSynchronize:            "cuEventSynchronize",
	symEventElapsedTime:            "cuEventElapsedTime",
	symMemAllocManaged:             "cuMemAllocManaged",
	symMemPrefetchAsync:            "cuMemPrefetchAsync",
	symMemAdvise:                   "cuMemAdvise",
	symMemAddressReserve:           "cuMemAddressReserve",
	symMemAddressFree:              "cuMemAddressFree",
	symMemCreate:                   "cuMemCreate",
	symMemRelease:                  "cuMemRelease",
	symMemMap:                      "cuMemMap",
	symMemUnmap:                    "cuMemUnmap",
	symMemSetAccess:                "cuMemSetAccess",
	symMemGetAllocationGranularity: "cuMemGetAllocationGranularity",
	symModuleLoadDataEx:            "cuModuleLoadDataEx",
	symModuleUnload:                "cuModuleUnload",
	symModuleGetFunction:           "cuModuleGetFunction",
	symLaunchKernel:                "cuLaunchKernel",
	symGraphDestroy:                "cuGraphDestroy",
	symGraphLaunch:                 "cuGraphLaunch",
	symGraphExecDestroy:            "cuGraphExecDestroy",

	symPrimaryCtxRelease:         "cuDevicePrimaryCtxRelease_v2",
	symPrimaryCtxReleaseOld:      "cuDevicePrimaryCtxRelease",
	symDeviceGetUUIDMIG:          "cuDeviceGetUuid_v2",
	symGraphInstantiateWithFlags: "cuGraphInstantiateWithFlags",
	symDeviceGetDefaultMemPool:   "cuDeviceGetDefaultMemPool",
	symMemAllocFromPoolAsync:     "cuMemAllocFromPoolAsync",
	symMemFreeAsync:              "cuMemFreeAsync",
	symMemPoolGetAttribute:       "cuMemPoolGetAttribute",
	symMemPoolSetAttribute:       "cuMemPoolSetAttribute",
	symMemPoolTrimTo:             "cuMemPoolTrimTo",
}
