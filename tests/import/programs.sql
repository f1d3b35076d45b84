use zoo;
delimiter //
create function f1(x int) returns int deterministic begin return x*2; end//
create procedure p1(in a int, out b varchar(20) character set utf8mb4, inout c decimal(5,2)) modifies sql data comment 'does' begin declare exit handler for sqlexception set b='ü'; insert into nokey values (a,'p'); set b = concat('got ',a); end//
create trigger tr1 before insert on nokey for each row set new.b = coalesce(new.b,'dflt')//
create trigger tr2 after insert on nokey for each row begin if new.a > 100 then set @x = 'ü'; end if; end//
create trigger tr3 after insert on nokey for each row follows tr2 set @y = 1//
create event ev1 on schedule every 1 day starts '2031-01-01 00:00:00' ends '2032-01-01' on completion preserve comment 'nightly' do begin insert into nokey values (9,'ev'); end//
create event ev2 on schedule at '2031-05-05 05:05:05' disable do delete from nokey//
delimiter ;
create user 'ann'@'%' identified by 'secret';
grant select, insert (a), update (b) on zoo.nokey to ann@'%'; grant all on farm.* to ann@'%' with grant option; grant execute on procedure zoo.p1 to ann@'%'; grant process, replication client on *.* to ann@'%';
create algorithm=merge sql security invoker view vf as select a, f1(a) as x from gen;
