%% As engine_work.cpp: so many seconds of processor time, one where there is no argument.
-module(engine_work).
-export([main/0]).

main() ->
    Seconds = case init:get_plain_arguments() of
        [Argument] -> list_to_integer(Argument);
        [] -> 1
    end,
    work_until(element(1, statistics(runtime)) + 1000 * Seconds),
    io:format("worked~n"),
    halt(0).

work_until(End) ->
    work_below(10),
    case element(1, statistics(runtime)) < End of
        true -> work_until(End);
        false -> ok
    end.

work_below(0) -> sum(lists:seq(1, 50), 0);
work_below(Depth) -> 1 + work_below(Depth - 1).

sum([Head | Tail], Sum) -> sum(Tail, Sum + Head * 3 rem 7);
sum([], Sum) -> Sum.
