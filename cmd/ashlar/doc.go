// Command ashlar explains GPU memory to the people who train and serve models
// with PyTorch.
//
//	ashlar explain FILE      why a request for memory failed, and what would have helped
//	ashlar whatif FILE       what other settings would have done to a recorded run
//	ashlar tune FILE         find the settings that serve a recorded run best
//	ashlar check FILE        a gate for CI
//	ashlar diff A B          what changed between two snapshots, or among many
//	ashlar view FILE...      show snapshots in the browser
//	ashlar report FILE       write a report to attach: one HTML file
//	ashlar stats FILE        show the facts of a snapshot, a dump or a message
//	ashlar events FILE       list the events of a snapshot with running totals
//	ashlar convert IN OUT    write a snapshot as pickle, JSON, Parquet or Perfetto trace
//	ashlar gen IN OUT        make a snapshot of any size from a recorded one
//	ashlar plan CONFIG       predict the memory of a run from a model's config.json
//	ashlar dry -- CMD        predict the memory of any script from a dry run
//	ashlar host detect PID   tell which malloc a process uses
//	ashlar host run -- CMD   run a command under each malloc and compare what it holds
//	ashlar host bench        compare the mallocs of this machine on small workloads
//	ashlar host costs        measure what a malloc of each size costs
//	ashlar mcp               answer coding agents over the Model Context Protocol
//	ashlar version           print the version
//	ashlar verify FILE...    replay recordings and snapshots, compare everything with PyTorch
//
// Text and JSON go to standard output; errors, warnings and progress go to
// standard error, each as one line "ashlar: ..." in lower case. Exit status: 0
// answered; 1 the answer is bad news that was asked for; 2 the input or the
// flags are wrong. With many files 2 wins over 1.
package main
