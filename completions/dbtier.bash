# bash completion for dbtier                                  -*- shell-script -*-
#
# The lists come from the program's own tables: after a change of options, commands or columns run the build
# target "completions". Names of databases come from the ledger when Tab is pressed. They are never evaluated:
# a name may hold anything but a NUL.

# Sets commands, globals and, for the command $1, options, operand and columns.
_dbtier_words()
{
	commands='scan formats devices probe diagnose ladder promote status verify rollback reclaim recover config'
	globals='--json --output --output-all --pairs --list --raw --noheadings --bytes --sort --width --quiet --verbose --progress --no-color --state-dir --help --version'
	options='' operand=none columns=''
	case $1 in
	scan)
		options='--no-probe --fresh --min-size --format --all --deep --exclude --one-file-system --follow'
		operand='file'
		columns='name format path size files access class observed tier device mount cached complete state gain advice note holds children'
		;;
	formats)
		options=''
		operand='none'
		columns='id name access moves tools members note'
		;;
	devices)
		options='--sysroot --capture'
		operand='file'
		columns='mount fstype tier disks stack size free rota tran model rand_iops rand_lat_ns seq_rate evidence note'
		;;
	probe)
		options='--seconds'
		operand='file'
		columns='path device tier pattern jobs block iops rate lat_avg_ns lat_p50_ns lat_p99_ns reads seconds proved note'
		;;
	diagnose)
		options='--seconds --to --watch --record --mask --replay --no-probe --no-trace'
		operand='file'
		columns='name path database format size tier mount rate misses_s mean jumps again class declared cached readers source'
		;;
	ladder)
		options='--dna --max --seconds --svg --compare'
		operand='file'
		columns='rung device tier size set latency_ns latency_4k_ns ratio textbook_ns iops iops4 stream streams textbook_stream before_ns change bar proved note series id directory shortest_ns middle_ns longest_ns cold proved before_ns change bar note points'
		;;
	promote)
		options='--to --dry-run --all-files --cold-to --reclaim --reserve --limit-rate --jobs --background --plan --budget --yes --no-probe --force'
		operand='plain'
		columns='id name path copy original size xxh128 state seconds members name path size gain use target chosen'
		;;
	status)
		options='--all --prometheus'
		operand='active'
		columns='id name path copy original size xxh128 since state health detail'
		;;
	verify)
		options=''
		operand='active'
		columns='id name path copy original size xxh128 since state health detail'
		;;
	rollback)
		options='--all --keep-copy --keep-changes --discard-changes --limit-rate'
		operand='active'
		columns='id name path copy original size xxh128 state seconds members'
		;;
	reclaim)
		options=''
		operand='active'
		columns='id name path copy original size xxh128 state seconds members'
		;;
	recover)
		options='--boot --repromote'
		operand='none'
		columns='id path action detail'
		;;
	config)
		options=''
		operand='none'
		columns='key value source'
		;;
	esac
}

# Sets value to the kind of value that option $2 of command $1 takes: empty for none.
_dbtier_value()
{
	value=''
	case "$1 $2" in
	*' --output' | *' -o') value='columns' ;;
	*' --sort') value='columns' ;;
	*' --width') value='none' ;;
	*' --progress') value='words json none' ;;
	*' --state-dir') value='dir' ;;
	scan' --min-size') value='none' ;;
	scan' --format') value='formats' ;;
	scan' --exclude') value='none' ;;
	devices' --sysroot') value='dir' ;;
	devices' --capture') value='file' ;;
	probe' --seconds') value='none' ;;
	diagnose' --seconds' | diagnose' -s') value='none' ;;
	diagnose' --to') value='dir' ;;
	diagnose' --record') value='file' ;;
	diagnose' --replay') value='file' ;;
	ladder' --max') value='none' ;;
	ladder' --seconds') value='none' ;;
	ladder' --svg') value='file' ;;
	ladder' --compare') value='file' ;;
	promote' --to') value='target' ;;
	promote' --cold-to') value='dir' ;;
	promote' --reserve') value='none' ;;
	promote' --limit-rate') value='none' ;;
	promote' --jobs' | promote' -j') value='none' ;;
	promote' --budget') value='none' ;;
	rollback' --limit-rate') value='none' ;;
	esac
}

# Reads the words before the cursor. Sets command and pending, the option whose value is being typed. With '=' in
# COMP_WORDBREAKS bash hands "--name=value" over as three words.
_dbtier_parse()
{
	local word last='' i only_operands=''

	command='' pending='' state_dir=''
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ -z $only_operands && $word == '=' ]]; then
			pending=$last
		elif [[ -n $pending ]]; then
			[[ $pending == --state-dir ]] && state_dir=$word
			pending=''
		elif [[ -z $only_operands && $word == -- ]]; then
			only_operands=1
		elif [[ -z $only_operands && $word == -?* ]]; then
			last=${word%%=*}
			_dbtier_value "$command" "$last"
			[[ -n $value && $word != *=* ]] && pending=$last
		elif [[ -z $command ]]; then
			command=$word
		fi
	done
	[[ $only_operands ]] && return 1
	return 0
}

# Files and directories are left to readline (compopt -o default, dirnames), which knows about quotes and ~.

# Sets quoted to the name as it must stand behind what was typed: behind an open quote, or bare. Fails where that
# quote cannot hold it. ':' and '=' would break the word when the next Tab comes.
_dbtier_quote()
{
	local name=$1 i c

	case $cur in
	\'*)
		quoted=$name
		[[ $name != *[\'[:cntrl:]]* ]]
		;;
	\"*)
		quoted=''
		for ((i = 0; i < ${#name}; i++)); do
			c=${name:i:1}
			[[ $c == [\$\`\\] ]] && quoted+=\\
			quoted+=$c
		done
		[[ $name != *[\"[:cntrl:]]* ]]
		;;
	*)
		printf -v quoted %q "$name"
		[[ $quoted == "\$'"* ]] || quoted=${quoted//:/\\:} quoted=${quoted//=/\\=}
		;;
	esac
}

# The names that begin with what was typed.
_dbtier_names()
{
	local typed=$cur name quoted
	local -a ask=("$program")

	typed=${typed#[\"\']}
	typed=${typed//\\/}
	[[ $state_dir ]] && ask+=(--state-dir "$state_dir")
	while IFS= read -r -d '' name; do
		# Before "--" it would be taken for an option.
		[[ $name == -* && -z $options_end ]] && continue
		[[ $name == "$typed"* ]] && _dbtier_quote "$name" && COMPREPLY+=("$quoted")
	done < <("${ask[@]}" __complete "$1" -- "$typed" 2>/dev/null)
}

# Where databases could go: what is known to be fast first, then any directory. Behind a quote or ~, and where nothing
# fast begins so, readline knows better about directories.
_dbtier_targets()
{
	local name quoted

	compopt -o dirnames
	[[ $cur == [\'\"~]* ]] || _dbtier_names targets
	((${#COMPREPLY[@]})) || return
	compopt -o nosort -o nospace
	while IFS= read -r name; do
		_dbtier_quote "$name/" && COMPREPLY+=("$quoted")
	done < <(compgen -d -- "$cur")
}

# The last of several columns in "name,size,fo".
_dbtier_columns()
{
	local before='' typed=$cur column

	if [[ $cur == *,* ]]; then
		before=${cur%,*},
		typed=${cur##*,}
	elif [[ $cur == +* ]]; then
		before=+
		typed=${cur#+}
	fi
	compopt -o nospace
	for column in $columns; do
		[[ ,${before#+} == *",$column,"* ]] && continue
		[[ $column == "$typed"* ]] && COMPREPLY+=("$before$column")
	done
}

_dbtier()
{
	local program=$1 cur=${COMP_WORDS[COMP_CWORD]}
	local commands globals options operand columns value command pending state_dir options_end=''

	COMPREPLY=()
	_dbtier_parse || options_end=1
	_dbtier_words "$command"
	if [[ -z $options_end && -n $pending && $cur == '=' ]]; then
		cur=''
	elif [[ -z $options_end && $cur == '=' ]]; then
		pending=${COMP_WORDS[COMP_CWORD - 1]}
		cur=''
	elif [[ -z $options_end && $cur == --*=* ]]; then # '=' is no word break here
		pending=${cur%%=*}
		_dbtier_value "$command" "$pending"
		[[ $value == words* ]] && mapfile -t COMPREPLY < <(compgen -P "$pending=" -W "${value#words}" -- "${cur#*=}")
		return
	fi
	if [[ -n $pending ]]; then
		_dbtier_value "$command" "$pending"
		case $value in
		dir) compopt -o dirnames ;;
		target) _dbtier_targets ;;
		file) compopt -o default ;;
		columns) _dbtier_columns ;;
		formats) _dbtier_names formats ;;
		words*) mapfile -t COMPREPLY < <(compgen -W "${value#words}" -- "$cur") ;;
		esac
	elif [[ -z $options_end && $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options $globals" -- "$cur")
	elif [[ -z $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur")
	elif [[ $operand == plain || $operand == active ]]; then
		[[ $cur == */* || $cur == '~'* ]] || _dbtier_names "$operand"
		((${#COMPREPLY[@]})) || compopt -o default
	elif [[ $operand == file ]]; then
		compopt -o default
	fi
}

complete -F _dbtier dbtier
