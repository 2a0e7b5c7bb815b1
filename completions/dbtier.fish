# fish completion for dbtier
#
# The lists come from the program's own tables: after a change of options, commands or columns run the build target
# "completions". Names of databases come from the ledger when Tab is pressed; fish quotes them.

# Prints the command, if there is one already.
function __dbtier_command
    set -l valued --output -o --sort --width --progress --state-dir
    set -l words (commandline -opc)
    set -l skip
    for word in $words[2..]
        if set -q skip[1]
            set -e skip
        else if contains -- $word $valued
            set skip 1
        else if not string match -q -- '-*' $word
            echo $word
            return
        end
    end
    return 1
end

function __dbtier_wants_command
    not __dbtier_command >/dev/null
end

function __dbtier_is
    test "$(__dbtier_command)" = $argv[1]
end

# Names with their descriptions, as the program tells them: NUL behind each. A tab would end a name: such a one cannot
# be offered here. Before "--" a name with a leading dash would be taken for an option.
function __dbtier_names
    set -l words (commandline -opc)
    set -l ask $words[1]
    for i in (seq 2 (count $words))
        switch $words[$i]
            case --state-dir
                set -q words[(math $i + 1)]; and set -a ask --state-dir $words[(math $i + 1)]
            case '--state-dir=*'
                set -a ask $words[$i]
        end
    end
    set -l answer ($ask __complete --notes $argv[1] 2>/dev/null | string split0)
    for i in (seq 1 2 (count $answer))
        string match -q -- \*\t\* $answer[$i]; and continue
        string match -q -- '-*' $answer[$i]; and not contains -- -- $words; and continue
        printf '%s\t%s\0' $answer[$i] $answer[(math $i + 1)]
    end | string split0
end

function __dbtier_targets
    __dbtier_names targets
    __fish_complete_directories
end

function __dbtier_all_columns
    switch (__dbtier_command)
        case scan
            printf '%s\t%s\n' name 'name of the database, as promote takes it'
            printf '%s\t%s\n' format 'format, by content'
            printf '%s\t%s\n' path 'what its tool is given: file, base name or directory'
            printf '%s\t%s\n' size 'size of all its files'
            printf '%s\t%s\n' files 'number of its files'
            printf '%s\t%s\n' access 'how its tool reads it: random, mapped, stream, loaded, mixed or cold'
            printf '%s\t%s\n' class 'the same, finer'
            printf '%s\t%s\n' observed 'that is what diagnose saw, not what the format declares'
            printf '%s\t%s\n' tier 'class of the slowest device that holds its hot files'
            printf '%s\t%s\n' device 'what is mounted there'
            printf '%s\t%s\n' mount 'mount point'
            printf '%s\t%s\n' cached 'share of it in the page cache, 0 to 1'
            printf '%s\t%s\n' complete 'no file is missing or cut short'
            printf '%s\t%s\n' state 'plain, promoted or archive'
            printf '%s\t%s\n' gain 'what a move would gain, with the measurements behind it'
            printf '%s\t%s\n' advice 'what to do with it'
            printf '%s\t%s\n' note 'what to know before moving it'
            printf '%s\t%s\n' holds 'of an archive: the databases that seem to be in it, and what tells'
            printf '%s\t%s\n' children 'its files, where there is more than one'
        case formats
            printf '%s\t%s\n' id 'name of the format, for scan --format'
            printf '%s\t%s\n' name 'the same in words'
            printf '%s\t%s\n' access 'how its tools read it; mixed: its files differ'
            printf '%s\t%s\n' moves 'what may be moved by itself: a file, the whole set, the directory'
            printf '%s\t%s\n' tools 'programs that read it'
            printf '%s\t%s\n' members 'its files'
            printf '%s\t%s\n' note 'what to know before moving it'
        case devices
            printf '%s\t%s\n' mount 'mount point'
            printf '%s\t%s\n' fstype 'filesystem type'
            printf '%s\t%s\n' tier 'class of the device: ram, nvme, ssd, hdd, network or unknown'
            printf '%s\t%s\n' disks 'disks at the bottom'
            printf '%s\t%s\n' stack 'layers from the filesystem to the disks'
            printf '%s\t%s\n' size 'size of the filesystem'
            printf '%s\t%s\n' free 'free for an ordinary user'
            printf '%s\t%s\n' rota 'the kernel says the disks rotate'
            printf '%s\t%s\n' tran 'how the disks are attached'
            printf '%s\t%s\n' model 'models of the disks'
            printf '%s\t%s\n' rand_iops 'random 4k reads a second, one at a time, as measured last'
            printf '%s\t%s\n' rand_lat_ns 'median time of such a read'
            printf '%s\t%s\n' seq_rate 'one stream, as measured last'
            printf '%s\t%s\n' evidence 'why the tier was decided'
            printf '%s\t%s\n' note 'what to know about it'
        case probe
            printf '%s\t%s\n' path 'what was probed'
            printf '%s\t%s\n' device 'topmost block device below it, or the source'
            printf '%s\t%s\n' tier 'class of the device, measurement included'
            printf '%s\t%s\n' pattern 'random or stream'
            printf '%s\t%s\n' jobs 'reads in flight'
            printf '%s\t%s\n' block 'size of one read'
            printf '%s\t%s\n' iops 'reads a second'
            printf '%s\t%s\n' rate 'bytes a second'
            printf '%s\t%s\n' lat_avg_ns 'mean time of a read'
            printf '%s\t%s\n' lat_p50_ns 'half of the reads took no longer'
            printf '%s\t%s\n' lat_p99_ns '99 % took no longer'
            printf '%s\t%s\n' reads 'reads that counted'
            printf '%s\t%s\n' seconds 'how long they took'
            printf '%s\t%s\n' proved 'the disks\' own counters saw the reads'
            printf '%s\t%s\n' note 'what to know about the figure'
        case diagnose
            printf '%s\t%s\n' name 'name of the file'
            printf '%s\t%s\n' path 'the whole of it'
            printf '%s\t%s\n' database 'database that it belongs to'
            printf '%s\t%s\n' format 'its format'
            printf '%s\t%s\n' size 'its size'
            printf '%s\t%s\n' tier 'class of the device it lies on'
            printf '%s\t%s\n' mount 'mount point'
            printf '%s\t%s\n' rate 'bytes a second read from the device'
            printf '%s\t%s\n' misses_s 'requests a second that were not in memory'
            printf '%s\t%s\n' mean 'mean size of such a request'
            printf '%s\t%s\n' jumps 'share of them that did not go on where one ended'
            printf '%s\t%s\n' again 'share of the bytes read before within ten seconds'
            printf '%s\t%s\n' class 'how it is read, as observed'
            printf '%s\t%s\n' declared 'how its format is read, by the catalogue'
            printf '%s\t%s\n' cached 'share of it in the page cache'
            printf '%s\t%s\n' readers 'processes that read it from the device'
            printf '%s\t%s\n' source 'where the figures come from'
        case ladder
            printf '%s\t%s\n' rung 'a cache, the memory, or a directory'
            printf '%s\t%s\n' device 'topmost block device below a directory'
            printf '%s\t%s\n' tier 'class of what was measured'
            printf '%s\t%s\n' size 'how much fits'
            printf '%s\t%s\n' set 'how much the reads were spread over'
            printf '%s\t%s\n' latency_ns 'one read that waits: a load (huge pages), or 4 KiB of a device'
            printf '%s\t%s\n' latency_4k_ns 'a load with 4 KiB pages: address translation included'
            printf '%s\t%s\n' ratio 'latency against the rung above'
            printf '%s\t%s\n' textbook_ns 'latency as textbooks have it'
            printf '%s\t%s\n' iops 'random reads of 4 KiB a second, one job'
            printf '%s\t%s\n' iops4 'the same with four jobs'
            printf '%s\t%s\n' stream 'one stream; of memory: one thread'
            printf '%s\t%s\n' streams 'four streams together; of memory: a thread on each processor'
            printf '%s\t%s\n' textbook_stream 'one stream as textbooks have it'
            printf '%s\t%s\n' before_ns 'latency in the answer that --compare names'
            printf '%s\t%s\n' change 'latency now against before'
            printf '%s\t%s\n' bar 'latency, three characters for a factor of ten'
            printf '%s\t%s\n' proved 'the disks\' own counters saw the reads'
            printf '%s\t%s\n' note 'what to know about it; told below the table, too'
        case promote
            printf '%s\t%s\n' id 'number of the promotion'
            printf '%s\t%s\n' name 'name of the database'
            printf '%s\t%s\n' path 'the database\'s path'
            printf '%s\t%s\n' copy 'where the copy is'
            printf '%s\t%s\n' original 'where the original is kept'
            printf '%s\t%s\n' size 'bytes of all its files'
            printf '%s\t%s\n' xxh128 'XXH3-128 hash of a single file'
            printf '%s\t%s\n' state 'state of the promotion'
            printf '%s\t%s\n' seconds 'time it took'
            printf '%s\t%s\n' members 'the files of a set'
        case status
            printf '%s\t%s\n' id 'number of the promotion'
            printf '%s\t%s\n' name 'name of the database'
            printf '%s\t%s\n' path 'the database\'s path'
            printf '%s\t%s\n' copy 'where the copy is'
            printf '%s\t%s\n' original 'where the original is kept'
            printf '%s\t%s\n' size 'bytes of all its files'
            printf '%s\t%s\n' xxh128 'XXH3-128 hash of a single file'
            printf '%s\t%s\n' since 'when it was promoted'
            printf '%s\t%s\n' state 'state of the promotion'
            printf '%s\t%s\n' health 'ok, or what is wrong'
            printf '%s\t%s\n' detail 'what is wrong and what to do'
        case verify
            printf '%s\t%s\n' id 'number of the promotion'
            printf '%s\t%s\n' name 'name of the database'
            printf '%s\t%s\n' path 'the database\'s path'
            printf '%s\t%s\n' copy 'where the copy is'
            printf '%s\t%s\n' original 'where the original is kept'
            printf '%s\t%s\n' size 'bytes of all its files'
            printf '%s\t%s\n' xxh128 'XXH3-128 hash of a single file'
            printf '%s\t%s\n' since 'when it was promoted'
            printf '%s\t%s\n' state 'state of the promotion'
            printf '%s\t%s\n' health 'ok, or what is wrong'
            printf '%s\t%s\n' detail 'what is wrong and what to do'
        case rollback
            printf '%s\t%s\n' id 'number of the promotion'
            printf '%s\t%s\n' name 'name of the database'
            printf '%s\t%s\n' path 'the database\'s path'
            printf '%s\t%s\n' copy 'where the copy is'
            printf '%s\t%s\n' original 'where the original is kept'
            printf '%s\t%s\n' size 'bytes of all its files'
            printf '%s\t%s\n' xxh128 'XXH3-128 hash of a single file'
            printf '%s\t%s\n' state 'state of the promotion'
            printf '%s\t%s\n' seconds 'time it took'
            printf '%s\t%s\n' members 'the files of a set'
        case reclaim
            printf '%s\t%s\n' id 'number of the promotion'
            printf '%s\t%s\n' name 'name of the database'
            printf '%s\t%s\n' path 'the database\'s path'
            printf '%s\t%s\n' copy 'where the copy is'
            printf '%s\t%s\n' original 'where the original is kept'
            printf '%s\t%s\n' size 'bytes of all its files'
            printf '%s\t%s\n' xxh128 'XXH3-128 hash of a single file'
            printf '%s\t%s\n' state 'state of the promotion'
            printf '%s\t%s\n' seconds 'time it took'
            printf '%s\t%s\n' members 'the files of a set'
        case recover
            printf '%s\t%s\n' id 'number of the promotion'
            printf '%s\t%s\n' path 'the database\'s path'
            printf '%s\t%s\n' action 'what was done'
            printf '%s\t%s\n' detail 'why it could not be'
        case config
            printf '%s\t%s\n' key 'what is set'
            printf '%s\t%s\n' value 'what it is set to, as it stands in the file'
            printf '%s\t%s\n' source 'file and line that say so, or built in'
    end
end

# The last of several columns in "name,size,fo".
function __dbtier_columns
    set -l typed (commandline -ct | string replace -r -- '^(--output=|-o)' '')
    set -l before (string match -r -- '^(\+|.*,)' $typed)[1]
    for column in (__dbtier_all_columns)
        echo "$before"$column
    end
end

complete -c dbtier -n __dbtier_wants_command -f -a scan -d 'find databases, tell where they lie and what to move'
complete -c dbtier -n __dbtier_wants_command -f -a formats -d 'list the formats that scan recognises'
complete -c dbtier -n __dbtier_wants_command -f -a devices -d 'tell which disks filesystems lie on, and how that is known'
complete -c dbtier -n __dbtier_wants_command -f -a probe -d 'measure the device below files or directories, or a block device'
complete -c dbtier -n __dbtier_wants_command -f -a diagnose -d 'tell what jobs wait for, and what would help'
complete -c dbtier -n __dbtier_wants_command -f -a ladder -d 'measure this machine\'s hierarchy of storage, from cache to disk'
complete -c dbtier -n __dbtier_wants_command -f -a promote -d 'copy to a faster place, prove it, link to it; the original stays'
complete -c dbtier -n __dbtier_wants_command -f -a status -d 'show what is promoted, and whether it is still right'
complete -c dbtier -n __dbtier_wants_command -f -a verify -d 'read copies and originals from the device, compare the hashes'
complete -c dbtier -n __dbtier_wants_command -f -a rollback -d 'undo the last promote command, or the named promotions'
complete -c dbtier -n __dbtier_wants_command -f -a reclaim -d 'delete kept originals, after proving the copies again'
complete -c dbtier -n __dbtier_wants_command -f -a recover -d 'finish or undo what an interrupted run left'
complete -c dbtier -n __dbtier_wants_command -f -a config -d 'print what the configuration files set, and where'
complete -c dbtier -l json -s J -d 'print the table as JSON'
complete -c dbtier -l output -s o -x -a '(__dbtier_columns)' -d 'columns to print; +COLS adds to the usual ones'
complete -c dbtier -l output-all -s O -d 'print all columns'
complete -c dbtier -l pairs -s P -d 'print rows as KEY="value" for a shell'
complete -c dbtier -l list -s l -d 'print an aligned list, as without it'
complete -c dbtier -l raw -s r -d 'print the table without alignment'
complete -c dbtier -l noheadings -s n -d 'print the table without headings'
complete -c dbtier -l bytes -s b -d 'print sizes in bytes, rates in bytes a second'
complete -c dbtier -l sort -x -a '(__dbtier_columns)' -d 'order the rows by that column'
complete -c dbtier -l width -x -d 'print the table for so many characters a line'
complete -c dbtier -l quiet -s q -d 'print errors only, no remarks'
complete -c dbtier -l verbose -s v -d 'tell more about what is done and why'
complete -c dbtier -l progress -x -a 'json none' -d 'report progress as JSON on stderr, or not at all'
complete -c dbtier -l no-color -d 'print without colors, as with NO_COLOR'
complete -c dbtier -l state-dir -x -a '(__fish_complete_directories)' -d 'directory of the ledger'
complete -c dbtier -l help -s h -d 'print a help text'
complete -c dbtier -l version -s V -d 'print the version'
complete -c dbtier -n '__dbtier_is scan' -l no-probe -d 'measure no device; use what was measured within a day'
complete -c dbtier -n '__dbtier_is scan' -l fresh -d 'measure each device again, whatever is remembered'
complete -c dbtier -n '__dbtier_is scan' -l min-size -x -d 'leave out smaller databases'
complete -c dbtier -n '__dbtier_is scan' -l format -x -a '(__dbtier_names formats)' -d 'list only databases of this format; may be repeated'
complete -c dbtier -n '__dbtier_is scan' -l all -d 'list unrecognised files too, from --min-size or 1M on'
complete -c dbtier -n '__dbtier_is scan' -l deep -d 'read archives to their end, not only their first 8M'
complete -c dbtier -n '__dbtier_is scan' -l exclude -x -d 'pass over names or paths that fit; may be repeated'
complete -c dbtier -n '__dbtier_is scan' -l one-file-system -s x -d 'stay on the file system of each PATH'
complete -c dbtier -n '__dbtier_is scan' -l follow -s L -d 'look behind symbolic links that dbtier did not make'
complete -c dbtier -n '__dbtier_is devices' -l sysroot -x -a '(__fish_complete_directories)' -d 'answer from a captured machine, unpacked there'
complete -c dbtier -n '__dbtier_is devices' -l capture -r -d 'write what describes the devices to a tar file'
complete -c dbtier -n '__dbtier_is probe' -l seconds -x -d 'time for each pattern at most (3)'
complete -c dbtier -n '__dbtier_is diagnose' -l seconds -s s -x -d 'observe so long (10; each screen of --watch: 2)'
complete -c dbtier -n '__dbtier_is diagnose' -l to -x -a '(__fish_complete_directories)' -d 'forecast for a move to there'
complete -c dbtier -n '__dbtier_is diagnose' -l watch -s w -d 'refresh the screen until q is pressed'
complete -c dbtier -n '__dbtier_is diagnose' -l record -r -d 'also write what was seen to FILE'
complete -c dbtier -n '__dbtier_is diagnose' -l mask -d 'take names out of what is recorded or shown'
complete -c dbtier -n '__dbtier_is diagnose' -l replay -r -d 'answer from such a file, observe nothing'
complete -c dbtier -n '__dbtier_is diagnose' -l no-probe -d 'measure no device; use what was measured within a day'
complete -c dbtier -n '__dbtier_is diagnose' -l no-trace -d 'do not use the kernel\'s tracing'
complete -c dbtier -n '__dbtier_is ladder' -l dna -d 'count letters in order and at random instead'
complete -c dbtier -n '__dbtier_is ladder' -l max -x -d 'with --dna: the longest text, a power of two (32M)'
complete -c dbtier -n '__dbtier_is ladder' -l seconds -x -d 'time for each pattern on a device at most (3)'
complete -c dbtier -n '__dbtier_is ladder' -l svg -r -d 'draw the answer'
complete -c dbtier -n '__dbtier_is ladder' -l compare -r -d 'an earlier answer of --json to put beside this one'
complete -c dbtier -n '__dbtier_is promote' -l to -x -k -a '(__dbtier_targets)' -d 'directory on the fast tier, or auto: the best one'
complete -c dbtier -n '__dbtier_is promote' -l dry-run -d 'check everything, print the plan, change nothing'
complete -c dbtier -n '__dbtier_is promote' -l all-files -d 'move every file of a set, not only the hot ones'
complete -c dbtier -n '__dbtier_is promote' -l cold-to -x -a '(__fish_complete_directories)' -d 'where the rest of an archive goes (beside the archive)'
complete -c dbtier -n '__dbtier_is promote' -l reclaim -d 'delete the originals once the copies are proved'
complete -c dbtier -n '__dbtier_is promote' -l reserve -x -d 'space to leave free on the target (5 %, at most 10G)'
complete -c dbtier -n '__dbtier_is promote' -l limit-rate -x -d 'copy at most so many bytes a second'
complete -c dbtier -n '__dbtier_is promote' -l jobs -s j -x -d 'blocks or files (2), archives (1) at a time; up to 8'
complete -c dbtier -n '__dbtier_is promote' -l background -d 'copy only when disks and processors are idle otherwise'
complete -c dbtier -n '__dbtier_is promote' -l plan -d 'choose from the last scan what brings most per byte'
complete -c dbtier -n '__dbtier_is promote' -l budget -x -d 'with --plan: bytes to fill at most'
complete -c dbtier -n '__dbtier_is promote' -l yes -d 'with --plan: promote what was chosen'
complete -c dbtier -n '__dbtier_is promote' -l no-probe -d 'measure nothing: judge devices by their kind'
complete -c dbtier -n '__dbtier_is promote' -l force -s f -d 'lift the rules that cannot lose data'
complete -c dbtier -n '__dbtier_is status' -l all -s a -d 'show what was rolled back or failed as well'
complete -c dbtier -n '__dbtier_is status' -l prometheus -d 'print metrics for node_exporter\'s textfile collector'
complete -c dbtier -n '__dbtier_is rollback' -l all -s a -d 'undo every promotion'
complete -c dbtier -n '__dbtier_is rollback' -l keep-copy -d 'leave the copy where it is'
complete -c dbtier -n '__dbtier_is rollback' -l keep-changes -d 'the copy was modified: copy it back'
complete -c dbtier -n '__dbtier_is rollback' -l discard-changes -d 'the copy was modified: return to the original'
complete -c dbtier -n '__dbtier_is rollback' -l limit-rate -x -d 'copy back at most so many bytes a second'
complete -c dbtier -n '__dbtier_is recover' -l boot -d 'while the system comes up: wait for nothing, print no table'
complete -c dbtier -n '__dbtier_is recover' -l repromote -d 'promote again what lost its copy, once its target is there'
complete -c dbtier -n '__dbtier_is scan' -F
complete -c dbtier -n '__dbtier_is formats' -f
complete -c dbtier -n '__dbtier_is devices' -F
complete -c dbtier -n '__dbtier_is probe' -F
complete -c dbtier -n '__dbtier_is diagnose' -F
complete -c dbtier -n '__dbtier_is ladder' -F
complete -c dbtier -n '__dbtier_is promote' -k -a '(__dbtier_names plain)' -f
complete -c dbtier -n '__dbtier_is status' -k -a '(__dbtier_names active)' -f
complete -c dbtier -n '__dbtier_is verify' -k -a '(__dbtier_names active)' -f
complete -c dbtier -n '__dbtier_is rollback' -k -a '(__dbtier_names active)' -f
complete -c dbtier -n '__dbtier_is reclaim' -k -a '(__dbtier_names active)' -f
complete -c dbtier -n '__dbtier_is recover' -f
complete -c dbtier -n '__dbtier_is config' -f
